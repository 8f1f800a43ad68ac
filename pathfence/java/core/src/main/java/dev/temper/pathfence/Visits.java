// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence;

import dev.temper.pathfence.internal.Names;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/** Which services a chain of calls is in: {@code name*count;name*count}. */
final class Visits {
    private static final int MOST = 8;

    private record Visit(String service, long count) {
        @Override
        public String toString() {
            return service + "*" + count;
        }
    }

    private final List<Visit> visits = new ArrayList<>();

    /** Reads the text; what breaks a rule is empty. */
    static Visits read(String text) {
        Visits out = new Visits();
        if (text == null || text.isEmpty()) return out;
        for (String part : text.split(";", -1)) {
            int star = part.indexOf('*');
            if (star < 0 || out.visits.size() == MOST) return new Visits();
            long count = PathContext.number(part.substring(star + 1));
            if (!Names.valid(part.substring(0, star)) || count < 1) return new Visits();
            out.visits.add(new Visit(part.substring(0, star), count));
        }
        return out;
    }

    long of(String service) {
        for (Visit v : visits) if (v.service.equals(service)) return v.count;
        return 0;
    }

    /** Adds one to a service's own entry, or appends it; a full list loses its first. */
    void add(String service) {
        for (int i = 0; i < visits.size(); i++) {
            Visit v = visits.get(i);
            if (!v.service.equals(service)) continue;
            visits.set(i, new Visit(service, v.count + 1));
            return;
        }
        if (visits.size() == MOST) visits.remove(0);
        visits.add(new Visit(service, 1));
    }

    @Override
    public String toString() {
        return visits.stream().map(Visit::toString).collect(Collectors.joining(";"));
    }
}
