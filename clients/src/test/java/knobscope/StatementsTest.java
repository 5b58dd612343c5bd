package knobscope;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import org.junit.jupiter.api.Test;

class StatementsTest {
  @Test
  void sqlNamesExactlyTheColumnsThatChange() {
    List<String> columns = List.of("field1", "field3");
    assertEquals("UPDATE t SET field1 = ?, field3 = ? WHERE YCSB_KEY = ?", Statements.sql("update", "t", columns));
    assertEquals("INSERT INTO t (YCSB_KEY, field1, field3) VALUES (?, ?, ?)", Statements.sql("insert", "t", columns));
    assertEquals("SELECT field1, field3 FROM t WHERE YCSB_KEY = ?", Statements.sql("read", "t", columns));
    assertEquals("SELECT field1, field3 FROM t WHERE YCSB_KEY >= ? ORDER BY YCSB_KEY LIMIT ?",
        Statements.sql("scan", "t", columns));
    assertEquals("DELETE FROM t WHERE YCSB_KEY = ?", Statements.sql("delete", "t", List.of()));
  }

  @Test
  void aNameThatIsNoNameNeverReachesTheServer() {
    assertThrows(IllegalArgumentException.class, () -> Statements.sql("read", "t; drop table t", List.of("a")));
    assertThrows(IllegalArgumentException.class, () -> Statements.sql("update", "t", List.of("a = 1, b")));
  }
}
