// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <iostream>

// Ends the test where something does not hold.
#define CHECK(what)                                                                         \
    do {                                                                                    \
        if (!(what)) {                                                                      \
            std::cerr << __FILE__ << ":" << __LINE__ << ": it does not hold that " #what "\n"; \
            std::exit(1);                                                                   \
        }                                                                                   \
    } while (false)
