layout(local_size_x_id = 0) in;

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Uints { uint at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float at[]; };

// What arguments are (`README.md`). The top bit of an operand's stride: its rows are those of the whole step.
struct Address { uint low; uint high; };
struct Operand { uint low; uint high; uint stride; };
struct State { uint table; uint page_rows; uint width; uint form; };

// The head that every kernel is given, and after it the kernel's own arguments.
#define PUSH(fields) layout(push_constant, std430) uniform Push { uint step_low; uint step_high; uint rows; uint op; fields } push;
#define STEP Uints(uvec2(push.step_low, push.step_high))
#define UINTS(x) Uints(uvec2((x).low, (x).high))
#define FLOATS(x) Floats(uvec2((x).low, (x).high))

// Rows that run: workgroups beyond them have nothing to do.
#define ROW_COUNT (STEP.at[push.rows])

// Where a row stands: its conversation among those of the step, its position, and the row of the step that it is.
struct RowAt { uint conv; uint pos; uint step_row; };
#define ROW_AT(row) RowAt(STEP.at[push.rows + 4 + 4 * (row)], STEP.at[push.rows + 5 + 4 * (row)], STEP.at[push.rows + 6 + 4 * (row)])

// The index of the first number of an operand's row.
#define ROW_START(operand, row) \
    ((((operand).stride >> 31) * STEP.at[push.rows + 1] + (row)) * ((operand).stride & 0x7fffffffu))

// Says that a row cannot be computed; of several faults of a step the one of the first op, then of the first row, is told.
#define FAIL(code, step_row, detail) { \
    uint fail_key = push.op << 19 | min(step_row, 0x7ffffu); \
    if (fail_key < atomicMin(STEP.at[0], fail_key)) { \
        STEP.at[1] = code; \
        STEP.at[2] = detail; \
    } \
}
