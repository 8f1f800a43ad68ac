// SPDX-License-Identifier: Apache-2.0
// Classes that are late together. algorithm.md: "Late together".
#include <utility>

#include "class.h"

namespace temper::pathfence {
namespace {

constexpr std::int64_t kDoubtful = 2, kCalmWindows = 10;

bool has(const std::vector<std::string>& edges, const std::string& edge) { return std::find(edges.begin(), edges.end(), edge) != edges.end(); }

// The edge that most of the classes use, the first by name of equals; empty where less than two use any.
template <class Classes>
std::string commonest(const Classes& classes) {
    std::map<std::string, int> count;
    for (const auto* c : classes)
        for (const std::string& edge : c->edges) ++count[edge];
    std::string best;
    int users = 1;
    for (const auto& [edge, n] : count) {
        if (n <= users) continue;
        users = n;
        best = edge;
    }
    return best;
}

}  // namespace

bool Core::Class::full() const { return met() || (group && group->met()); }

void Core::Group::touch(Time now) {
    Limited::touch(now, std::any_of(members.begin(), members.end(), [](const Class* c) { return !c->queue.empty(); }));
}

void Core::Group::add(Class& c) {
    if (members.empty() || c.target < target) target = c.target;
    members.push_back(&c);
    in_flight += c.in_flight;
    timely = timely || c.timely;
    c.group = this;
}

// Notes that requests of a configured class use an edge.
void Core::uses(Class& c, const std::string& edge) {
    if (c.edges.size() == kMaxEdges || has(c.edges, edge)) return;
    c.add_edge(edge);
    if (c.suspect) regroup();
}

// Looks at a completion: two in a row that are no good are hardly chance.
void Core::judge(Class& c, bool good) {
    if (good) {
        c.misses = 0;
        return;
    }
    c.calm = 0;
    if (++c.misses >= kDoubtful) mistrust(c);
}

void Core::mistrust(Class& c) {
    c.calm = 0;
    if (c.suspect || c.unknown || config_.off || config_.without.learn) return;
    c.suspect = true;
    regroup();
}

// Lowers the limit of a group of which a member has stalled to twice what they hold together at other times.
void Core::contain(Group& g) {
    std::int64_t level = 0;
    for (const Class* c : g.members) level += c->level;
    g.touch(now_);
    set_limit(g, std::min(g.limit, 2 * level / 1000 + 4), "stall");
}

// Divides the suspects: those that use the edge that most of them use are one group, and so on. An edge's group stays the
// same one while the edge has one.
void Core::regroup() {
    std::vector<Class*> left;
    for (auto& c : classes_) {
        c->touch(now_);
        if (c->suspect) left.push_back(c.get());
    }
    for (auto& c : classes_) c->group = nullptr;
    auto before = std::exchange(groups_, {});
    for (std::string edge; !(edge = commonest(left)).empty();) {
        groups_.push_back(group_of(edge, before));
        Group& g = *groups_.back();
        const auto others = std::stable_partition(left.begin(), left.end(), [&](const Class* c) { return has(c->edges, edge); });
        std::for_each(left.begin(), others, [&](Class* c) { g.add(*c); });
        left.erase(left.begin(), others);
    }
}

// An edge's group, without members: the one that it had before, or a new one.
std::unique_ptr<Core::Group> Core::group_of(const std::string& edge, std::vector<std::unique_ptr<Group>>& before) {
    for (auto& g : before) {
        if (!g || g->edge != edge) continue;
        g->members.clear();
        g->in_flight = 0;
        return std::move(g);
    }
    auto g = std::make_unique<Group>();
    ClassLabel& label = group_labels_[edge];
    label.name = "~edge:" + edge;
    g->label = &label;
    g->edge = edge;
    g->limit = config_.workers;
    g->window.touched = now_;
    return g;
}

// Ends a window for the groups, then lets go of classes that were calm for long.
void Core::close_groups(Time length, bool valid) {
    for (auto& g : groups_) {
        g->touch(now_);
        const Window w = std::exchange(g->window, {});
        g->window.touched = now_;
        if (!valid) {
            g->sample = {};
            continue;
        }
        for (Class* c : g->members)
            if (w.bound > 0 && 2 * c->hold >= g->hold) c->calm = -1;
        learn(*g, w, length);
    }
    if (valid) acquit();
}

// Takes classes that were calm for long from the suspects.
void Core::acquit() {
    bool fewer = false;
    for (auto& c : classes_) {
        if (++c->calm < kCalmWindows || !c->suspect) continue;
        c->suspect = false;
        fewer = true;
    }
    if (fewer) regroup();
}

}  // namespace temper::pathfence
