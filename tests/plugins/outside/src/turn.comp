// The device form of `outside.turn@1`. `turn.spv` is `glslangValidator --target-env vulkan1.2 -g0 -V turn.comp -o turn.spv`.
#version 450

layout(local_size_x_id = 0) in;

layout(set = 0, binding = 0) readonly buffer X {
    float x[];
};

layout(set = 0, binding = 1) writeonly buffer Y {
    float y[];
};

layout(set = 0, binding = 2) readonly buffer Gain {
    float gain[];
};

layout(set = 0, binding = 3) readonly buffer Rows {
    uint count;
    uint none[3];
    uvec4 at[];
};

layout(set = 0, binding = 4) readonly buffer Params {
    uint turn;
};

void main() {
    uint row = gl_WorkGroupID.y;
    uint column = gl_GlobalInvocationID.x;
    uint width = gain.length();
    if (row < count && column < width) {
        uint start = row * width;
        y[start + column] = gain[column] * x[start + (column + turn) % width];
    }
}
