// The kernel of the tests: one line of each thing that a kernel of ours does. `mod.rs` holds it compiled and says how.
#version 450
#extension GL_EXT_buffer_reference : require
#extension GL_KHR_shader_subgroup_arithmetic : require

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint MODE = 0;

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats {
    float v[];
};

layout(push_constant) uniform Push {
    Floats from;
    Floats to;
    uint count;
    float factor;
} push;

void main() {
    uint i = gl_GlobalInvocationID.x;
    bool inside = i < push.count;
    float value = inside ? push.from.v[i] : 0.0;
    float sum = subgroupAdd(value);
    if (!inside) {
        return;
    }
    if (MODE == 0) {
        push.to.v[i] = value * push.factor;
    } else if (MODE == 1) {
        push.to.v[i] = sum;
    } else if (MODE == 2) {
        push.to.v[i] = float(gl_SubgroupSize);
    } else {
        push.to.v[i] += push.factor;
    }
}
