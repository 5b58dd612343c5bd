package knobscope;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.sql.SQLException;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class ConflictsTest {
  private static final SQLException DEADLOCK = new SQLException("deadlock", "40P01");

  @Test
  void onlyConflictsAreRepeated() {
    for (SQLException conflict : List.of(DEADLOCK, new SQLException("could not serialize", "40001"),
        new SQLException("deadlock", "40001", 1213), new SQLException("lock wait timeout", "HY000", 1205),
        new SQLException("busy", null, 5), new SQLException("busy snapshot", null, 517))) {
      assertTrue(Conflicts.isConflict(conflict), conflict.getMessage());
    }
    for (SQLException other : List.of(new SQLException("no such table", null, 1),
        new SQLException("connection lost", "08006"), new SQLException("duplicate key", "23505"))) {
      assertEquals(false, Conflicts.isConflict(other), other.getMessage());
    }
  }

  @Test
  void withoutAClientThatCountsNothingIsRepeated() {
    AtomicInteger attempts = new AtomicInteger();
    assertThrows(SQLException.class, () -> Conflicts.repeat(() -> {
      attempts.incrementAndGet();
      throw DEADLOCK;
    }));
    assertEquals(1, attempts.get());
  }
}
