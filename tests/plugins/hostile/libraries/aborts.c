// Its initialiser aborts the process.
#include <stdlib.h>
__attribute__((constructor)) static void start(void) { abort(); }
