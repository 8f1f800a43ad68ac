// SPDX-License-Identifier: Apache-2.0
package dev.temper.pathfence.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class AdmissionTest {
    private static final List<String> PATHS = List.of("innocent", "slowed");

    /** Lets requests of a path in until one is refused; what has to be run at the end of each. */
    private static List<Runnable> fill(Admission admission, String path, int most) {
        List<Runnable> ends = new ArrayList<>();
        for (Optional<Runnable> end = admission.enter(path); end.isPresent(); end = admission.enter(path)) {
            ends.add(end.get());
            if (ends.size() == most) break;
        }
        return ends;
    }

    @Test
    void aBulkheadIsHalfOfTheWorkers() {
        Admission admission = Admission.named("bulkhead", 16, PATHS);
        List<Runnable> slowed = fill(admission, "slowed", 100);
        assertEquals(8, slowed.size());
        assertEquals(8, fill(admission, "innocent", 100).size());
        slowed.get(0).run();
        assertEquals(1, fill(admission, "slowed", 100).size());
    }

    /** One path may have all of the limit, and then still no more than leaves the other its half. */
    @ParameterizedTest
    @CsvSource({"vegas", "gradient2"})
    void aLimiterIsPartitioned(String name) {
        Admission admission = Admission.named(name, 16, PATHS);
        List<Runnable> slowed = fill(admission, "slowed", 1000);
        assertEquals(20, slowed.size(), "the limit that the library starts with");
        assertEquals(10, fill(admission, "innocent", 1000).size());
        slowed.get(0).run();
        assertTrue(admission.enter("slowed").isEmpty());
    }

    @Test
    void nothingIsRefusedWithoutAnAdmission() {
        assertEquals(1000, fill(Admission.named("", 16, PATHS), "slowed", 1000).size());
        assertThrows(IllegalArgumentException.class, () -> Admission.named("none", 16, PATHS));
    }
}
