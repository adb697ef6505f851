// Calls a function that nobody defines. Linked for lazy binding, so that only an opening that resolves all at once finds it out.
void coli_no_such_function(void);
void coli_call(void) { coli_no_such_function(); }
