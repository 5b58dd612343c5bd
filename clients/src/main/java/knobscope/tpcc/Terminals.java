package knobscope.tpcc;

import java.sql.SQLException;
import knobscope.BindingException;
import knobscope.Conflicts;
import knobscope.TimedDB;
import knobscope.sql.Sql;
import site.ycsb.Status;

/**
 * The terminals that one client thread serves. Terminal t stands in warehouse t mod W and district t / W; thread i of
 * n serves every n-th from i on and lets one of them, drawn each time, carry out a transaction. So all warehouses are
 * used however few threads there are, and with ten threads per warehouse each thread is one terminal.
 */
final class Terminals {
  private static final double LONGEST_THINKING = 10; // times the mean: clause 5.2.5.4

  private final Sql sql;
  private final Scale scale;
  private final Chance chance;
  private final Deck deck;
  private final int first;
  private final int step;
  private final Mix mix;

  Terminals(Sql sql, Scale scale, int thread, int threads, Mix mix) {
    this.sql = sql;
    this.scale = scale;
    this.mix = mix;
    int terminals = scale.warehouses() * Scale.DISTRICTS;
    first = thread % terminals;
    step = Math.min(threads, terminals);
    chance = Chance.forRun(scale);
    deck = new Deck(chance, mix);
  }

  /** Carries out the next transaction of the mix; one that conflicts with another is tried again and counted. */
  void next(TimedDB client) {
    Kind kind = deck.next();
    int terminal = first + step * chance.between(0, (scale.warehouses() * Scale.DISTRICTS - 1 - first) / step);
    int warehouse = terminal % scale.warehouses() + 1;
    Transaction transaction = kind.draw(chance, scale, mix, warehouse, terminal / scale.warehouses() + 1);
    pause(client, kind.keyingS);
    client.timed(kind.name(), () -> complete(transaction));
    pause(client, Math.min(LONGEST_THINKING, -Math.log(1 - chance.uniform())) * kind.thinkS);
  }

  private void pause(TimedDB client, double seconds) {
    if (mix.waiting() > 0) {
      client.pause(mix.waiting() * seconds);
    }
  }

  private Status complete(Transaction transaction) {
    try {
      return Conflicts.repeat(() -> {
        carryOut(sql, transaction);
        return Status.OK;
      });
    } catch (SQLException e) {
      throw new BindingException(e);
    }
  }

  /** Carries out a transaction once, and ends it whatever happens. */
  static void carryOut(Sql sql, Transaction transaction) throws SQLException {
    try {
      if (transaction.run(sql)) {
        sql.commit();
      } else {
        sql.rollback();
      }
    } catch (SQLException e) {
      sql.rollback();
      throw e;
    }
  }
}
