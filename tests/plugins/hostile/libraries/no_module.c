// A library that is no plugin.
int coli_nothing(void) { return 0; }
