// The main of every test program. What the driver and the program keep goes to cache/ beside the folder of the test programs:
// tests leave the user's own cache folder alone, and find what the last run of this build compiled.
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    const std::string cache = (std::filesystem::absolute(argv[0]).parent_path() / "../cache").lexically_normal().string();
    for (const char* name : {"XDG_CACHE_HOME", "MESA_SHADER_CACHE_DIR"}) // the second goes before the first where it is set
#if defined(_WIN32)
        _putenv_s(name, cache.c_str());
#else
        setenv(name, cache.c_str(), /*overwrite=*/1);
#endif
    return RUN_ALL_TESTS();
}
