// Its initialiser does not come back.
__attribute__((constructor)) static void start(void) {
    for (volatile int forever = 1; forever;) {
    }
}
