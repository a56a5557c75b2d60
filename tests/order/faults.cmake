# The probe as kernels that shuffle are built.
auspex_shader(order_probe.subgroup SOURCE tests/order/order_probe.comp DEFINES SUBGROUP=1)
