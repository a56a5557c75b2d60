// Linked into every program where leaks are looked for: LeakSanitizer finds out at the end which module allocated what was
// lost, and lsan/suppressions.txt names the driver's, which the Vulkan loader would have unloaded by then.
extern "C" __attribute__((visibility("default"))) int dlclose(void*);

extern "C" int dlclose(void*) {
    return 0;
}
