// Three kernels. Their metadata (LLVM AMDGPU User Guide, "Code Object V4 Metadata") equals that of
// compiled kernels: one that calls printf, one that calls the host, one that does neither. The code
// is only what tells them apart: each call of the host ends in an interrupt.
	.amdgcn_target "amdgcn-amd-amdhsa--gfx90a"

.macro kernel name calls_host=0
	.text
	.globl	\name
	.p2align	8
	.type	\name,@function
\name:
	.if \calls_host
	s_sendmsg sendmsg(MSG_INTERRUPT)
	.endif
	s_endpgm
	.size	\name, .-\name
	.rodata
	.p2align	6
	.amdhsa_kernel \name
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_next_free_vgpr 1
		.amdhsa_next_free_sgpr 8
		.amdhsa_accum_offset 4
	.end_amdhsa_kernel
.endm

	kernel prints
	kernel calls_host calls_host=1
	kernel quiet

	.amdgpu_metadata
---
amdhsa.kernels:
  - .args:
      - .offset: 0
        .size: 8
        .value_kind: hidden_printf_buffer
    .group_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .kernarg_segment_size: 8
    .max_flat_workgroup_size: 256
    .name: prints
    .private_segment_fixed_size: 0
    .sgpr_count: 8
    .symbol: prints.kd
    .vgpr_count: 1
    .wavefront_size: 64
  - .args:
      - .offset: 0
        .size: 8
        .value_kind: hidden_hostcall_buffer
    .group_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .kernarg_segment_size: 8
    .max_flat_workgroup_size: 256
    .name: calls_host
    .private_segment_fixed_size: 0
    .sgpr_count: 8
    .symbol: calls_host.kd
    .vgpr_count: 1
    .wavefront_size: 64
  - .args:
      - .offset: 0
        .size: 8
        .value_kind: hidden_none
    .group_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .kernarg_segment_size: 8
    .max_flat_workgroup_size: 256
    .name: quiet
    .private_segment_fixed_size: 0
    .sgpr_count: 8
    .symbol: quiet.kd
    .vgpr_count: 1
    .wavefront_size: 64
amdhsa.printf:
  - '1:1:4:value %u\n'
amdhsa.target: amdgcn-amd-amdhsa--gfx90a
amdhsa.version:
  - 1
  - 1
...
	.end_amdgpu_metadata
