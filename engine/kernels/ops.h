// Every op of the engine in one glance; each has its own header, .cpp and shader of the same name.
#pragma once

#include "kernels/accept.h"
#include "kernels/accept_candidates.h"
#include "kernels/apply_commands.h"
#include "kernels/attention.h"
#include "kernels/edit_logits.h"
#include "kernels/embed.h"
#include "kernels/matmul.h"
#include "kernels/matvec.h"
#include "kernels/propose.h"
#include "kernels/rmsnorm.h"
#include "kernels/rope_append.h"
#include "kernels/rows.h"
#include "kernels/swiglu.h"
#include "kernels/transforms.h"
#include "kernels/truncate.h"
#include "kernels/vocab.h"
