package knobscope;

import site.ycsb.DBException;

/** The DBMS did not accept an init statement: a knob's value is not allowed, which is a result and no accident. */
public final class RefusedException extends DBException {
  private static final long serialVersionUID = 1L;

  public RefusedException(Throwable cause) {
    super(cause);
  }
}
