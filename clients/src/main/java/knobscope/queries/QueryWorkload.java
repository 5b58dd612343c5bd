package knobscope.queries;

import java.io.IOException;
import java.nio.file.Path;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import knobscope.BindingException;
import knobscope.Closing;
import knobscope.SqlConnection;
import knobscope.TimedDB;
import knobscope.sql.Sql;
import site.ycsb.Client;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.Workload;
import site.ycsb.WorkloadException;

/**
 * Queries over tables of their own. Property: {@code queries.data} (directory with the files of the tables, for a load).
 * A load stores a table for each insert of YCSB. In a run every thread sends streams of queries; a query is an operation
 * of its own and must answer what it answered after loading.
 */
public abstract class QueryWorkload extends Workload implements Closing {
  private final String title;
  private final String answers;
  private Path data;
  private List<String> tables;
  private final AtomicInteger nextTable = new AtomicInteger();
  private final Map<String, Long> loaded = new ConcurrentHashMap<>();
  private final Set<String> wrong = ConcurrentHashMap.newKeySet();

  /** The title is for people; the table of answers has the columns query and digest. */
  protected QueryWorkload(String title, String answers) {
    this.title = title;
    this.answers = answers;
  }

  /** Names of the tables whose rows lie in a directory. */
  protected abstract List<String> tables(Path directory) throws IOException;

  /** Statements that make all tables, that of the answers too; an error for a DBMS that has not all it takes. */
  protected abstract List<String> schema(Sql sql) throws SQLException;

  /** Stores the rows of a table and returns how many there are. */
  protected abstract long load(Sql sql, String table, Path directory) throws SQLException, IOException;

  /** Statements that follow the rows: indexes, statistics. */
  protected abstract List<String> completion(Sql sql) throws SQLException;

  /** Texts of the queries by their names, in order, as this DBMS takes them. */
  protected abstract Map<String, String> queries(Sql sql) throws SQLException;

  @Override
  public void init(Properties properties) throws WorkloadException {
    if (!Boolean.parseBoolean(properties.getProperty(Client.DO_TRANSACTIONS_PROPERTY, "true"))) {
      data = Path.of(properties.getProperty("queries.data"));
      try {
        tables = tables(data);
      } catch (IOException e) {
        throw new WorkloadException(e);
      }
      properties.setProperty(Client.INSERT_COUNT_PROPERTY, String.valueOf(tables.size()));
    }
    properties.setProperty(Client.OPERATION_COUNT_PROPERTY, String.valueOf(Integer.MAX_VALUE)); // a run ends by time
  }

  /** What a thread works with: a connection for a load, streams of queries for a run. */
  @Override
  public Object initThread(Properties properties, int thread, int threads) throws WorkloadException {
    TimedDB client = TimedDB.ofThread();
    client.closeWith(this);
    try {
      Sql sql = sql(client.binding());
      if (data == null) {
        return new Streams(sql, queries(sql), answers, thread);
      }
      for (String statement : schema(sql)) {
        sql.execute(statement);
      }
      sql.commit();
      return sql;
    } catch (SQLException | DBException e) {
      TimedDB.giveUp(e);
      throw new WorkloadException(e);
    }
  }

  @Override
  public boolean doInsert(DB db, Object connection) {
    return TimedDB.ofThread().timed("LOAD", () -> {
      String table = tables.get(nextTable.getAndIncrement());
      try {
        loaded.put(table, load((Sql) connection, table, data));
        return Status.OK;
      } catch (SQLException | IOException e) {
        throw new BindingException(e);
      }
    }).isOk();
  }

  @Override
  public boolean doTransaction(DB db, Object streams) {
    Streams own = (Streams) streams;
    String name = own.next();
    TimedDB.ofThread().timed(name, () -> {
      try {
        if (own.answersAsLoaded(name)) {
          return Status.OK;
        }
        wrong.add(name);
        return Status.UNEXPECTED_STATE;
      } catch (SQLException e) {
        throw new BindingException(e);
      }
    });
    return true;
  }

  /** Indexes, statistics, a count of all rows, and the answers with which those of later runs are compared. */
  @Override
  public void afterLoad(DB binding) throws DBException {
    try {
      Sql sql = sql(binding);
      for (String statement : completion(sql)) {
        sql.execute(statement);
        sql.commit();
      }
      for (String table : tables) {
        Long rows = sql.one("select count(*) from " + table, row -> row.getLong(1));
        if (!rows.equals(loaded.get(table))) { // of a table that could not be stored there is no number at all
          throw new DBException(table + " has " + rows + " rows instead of " + loaded.get(table));
        }
      }
      Streams.storeAnswers(sql, queries(sql), answers);
    } catch (SQLException e) {
      throw new DBException(e);
    }
  }

  /** One check per query: it succeeded in the measured window, and no answer was another one. */
  @Override
  public List<Check> afterRun(DB binding) throws DBException {
    Set<String> measured = TimedDB.measured();
    List<Check> checks = new ArrayList<>();
    try {
      for (String name : queries(sql(binding)).keySet()) {
        String detail = wrong.contains(name) ? "another answer than after loading"
            : measured.contains(name) ? "" : "not once in the measured window: it is too short for a stream of queries";
        checks.add(new Check(title + " " + name, detail.isEmpty(), detail));
      }
    } catch (SQLException e) {
      throw new DBException(e);
    }
    return checks;
  }

  private Sql sql(DB binding) throws SQLException, DBException {
    if (binding instanceof SqlConnection lender) {
      return new Sql(lender.connection());
    }
    throw new DBException(binding.getClass().getName() + " has no SQL connection, which " + title + " needs");
  }
}
