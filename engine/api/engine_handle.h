// What auspex_engine* points to.
#pragma once

#include "session/engine.h"

struct auspex_engine {
    std::unique_ptr<auspex::Engine> engine;
};
