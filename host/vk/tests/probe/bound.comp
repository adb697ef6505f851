// The kernel of the tests of bound buffers: copies floats, from and to where its words say, inside or not. `bound.spv` is
// `glslangValidator --target-env vulkan1.2 -g0 -V bound.comp -o bound.spv`.
#version 450

layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint PLUS = 1;

layout(set = 0, binding = 0) readonly buffer From {
    float from[];
};

layout(set = 0, binding = 1) buffer To {
    float to[];
};

layout(set = 0, binding = 2) readonly buffer Words {
    uint count;
    uint from_at;
    uint to_at;
};

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < count) {
        to[to_at + i] = from[from_at + i] + float(PLUS);
    }
}
