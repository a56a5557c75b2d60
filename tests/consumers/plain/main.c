/* A C host without Vulkan of its own: checks the version it was compiled for, then generates a few tokens. */
#include "../story.h"

int main(int argc, char** argv) {
    auspex_engine_desc desc;
    if (argc != 3) return 2;
    if (auspex_version() >> 22 != AUSPEX_VERSION_MAJOR) {
        fprintf(stderr, "header and library differ in version\n");
        return 1;
    }
    if (auspex_engine_desc_init(&desc, sizeof desc) < 0) return 1;
    desc.target_path = argv[1];
    desc.draft_path = argv[2];
    return tell_story(&desc, 12);
}
