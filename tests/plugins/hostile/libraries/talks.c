// Its initialiser prints to both streams; it is no plugin either.
#include <stdio.h>
__attribute__((constructor)) static void start(void) {
    printf("hello\n{\"refused\":null}\n");
    fflush(stdout);
    fprintf(stderr, "hello\n");
}
