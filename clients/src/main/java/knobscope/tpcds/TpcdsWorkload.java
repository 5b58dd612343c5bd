package knobscope.tpcds;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import knobscope.queries.QueryWorkload;
import knobscope.queries.Texts;
import knobscope.sql.Sql;

/**
 * The queries of TPC-DS, Q1 to Q99. Rows are files named as their tables; the texts of the queries are rows as well, so
 * that a run asks what was asked after loading.
 */
public final class TpcdsWorkload extends QueryWorkload {
  public TpcdsWorkload() {
    super("TPC-DS", "tpcds_answers");
  }

  @Override
  protected List<String> tables(Path directory) throws IOException {
    try (Stream<Path> files = Files.list(directory)) {
      return files.map(file -> file.getFileName().toString()).filter(name -> name.endsWith(Copy.SUFFIX)).sorted()
          .map(name -> name.substring(0, name.length() - Copy.SUFFIX.length())).toList();
    }
  }

  @Override
  protected List<String> schema(Sql sql) throws SQLException {
    Copy.of(sql);
    return Texts.statements(getClass(), "schema.sql");
  }

  @Override
  protected long load(Sql sql, String table, Path directory) throws SQLException, IOException {
    return Copy.of(sql).load(sql, table, directory);
  }

  @Override
  protected List<String> completion(Sql sql) throws SQLException {
    List<String> statements = new ArrayList<>(Texts.statements(getClass(), "indexes.sql"));
    statements.add("analyze");
    return statements;
  }

  @Override
  protected Map<String, String> queries(Sql sql) throws SQLException {
    Map<String, String> queries = new LinkedHashMap<>();
    sql.all("select number, statement from tpcds_queries where dbms = ? order by number",
        row -> queries.put("Q" + row.getInt(1), row.getString(2)), sql.product());
    sql.commit();
    return queries;
  }
}
