package knobscope;

import java.util.List;
import site.ycsb.DB;
import site.ycsb.DBException;

/** A workload that has the last word: on a connection of its own, when no thread works any more. */
public interface Closing {
  /** Something that must hold for the data after a run, and what was found. */
  record Check(String name, boolean holds, String detail) {}

  /** Completes a load (indexes) and verifies it; throws when something is not as it should be. */
  void afterLoad(DB binding) throws DBException;

  /** Checks the data after a run. */
  List<Check> afterRun(DB binding) throws DBException;
}
