package knobscope.tpch;

import java.io.IOException;
import java.nio.file.Path;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import knobscope.queries.QueryWorkload;
import knobscope.queries.Texts;
import knobscope.sql.Sql;
import site.ycsb.WorkloadException;

/**
 * The queries of TPC-H, revision 3, Q1 to Q22, over rows of tpchgen-cli. Property beside those of all query workloads:
 * {@code tpch.scale_factor}.
 */
public final class TpchWorkload extends QueryWorkload {
  private double scaleFactor;

  public TpchWorkload() {
    super("TPC-H", "tpch_answers");
  }

  @Override
  public void init(Properties properties) throws WorkloadException {
    scaleFactor = Double.parseDouble(properties.getProperty("tpch.scale_factor"));
    super.init(properties);
  }

  @Override
  protected List<String> tables(Path directory) {
    return Tables.NAMES;
  }

  @Override
  protected List<String> schema(Sql sql) throws SQLException {
    Dialect.of(sql);
    return Texts.statements(getClass(), "schema.sql");
  }

  @Override
  protected long load(Sql sql, String table, Path directory) throws SQLException, IOException {
    return Tables.load(sql, Dialect.of(sql), table, directory);
  }

  @Override
  protected List<String> completion(Sql sql) throws SQLException {
    List<String> statements = new ArrayList<>(Texts.statements(getClass(), "indexes.sql"));
    statements.add(Dialect.of(sql).statistics);
    return statements;
  }

  @Override
  protected Map<String, String> queries(Sql sql) throws SQLException {
    return Dialect.of(sql).queries(scaleFactor);
  }
}
