// SPDX-License-Identifier: Apache-2.0
// What travels with a request; ../../../../spec/wire.md has the forms, the bounds and who is trusted.
#pragma once

#include <map>
#include <string>

#include "temper/pathfence/fence.h"

namespace temper::pathfence {

// What is carried from hop to hop.
struct Context {
    std::string path;     // empty: none
    Time timeout = 0;     // what is left; 0: not said
    std::string visits;   // name*count;name*count
};

using Headers = std::map<std::string, std::string>;

// Reads pf.path, pf.deadline and pf.visits. What breaks a rule is as if it were not there.
Context read_headers(const Headers& headers);
void write_headers(const Context& context, Headers& headers);

// The same three from a W3C baggage header, and as members to append to one.
Context read_baggage(const std::string& header);
std::string write_baggage(const Context& context);

// The same three in front of a Thrift method's name: pf!path!deadline!visits!method. split() takes them off, and leaves
// the plain name.
std::string join_name(const Context& context, const std::string& method);
Context split_name(std::string& method);

// How often the chain has been in this service before.
std::int64_t depth_of(const Context& context, const std::string& service);
// What this service sends on after it used up some of the time. Without a name it adds no visit.
Context onward(Context context, const std::string& service, Time used);
// What is left of a context from a peer that may not choose keys and depths.
Context untrusted(Context context);

}  // namespace temper::pathfence
