package knobscope;

import java.util.Map;
import site.ycsb.DBException;

/** A binding that can ask its own connection which values the knobs really have. */
public interface ReadsBack {
  /** Runs one statement that answers rows of (name, value); rows without a value are left out. */
  Map<String, String> readAll(String query) throws DBException;

  /** Runs one statement that answers a single value; null when it answers nothing. */
  String readOne(String query) throws DBException;
}
