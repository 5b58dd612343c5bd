package knobscope;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import site.ycsb.Client;

/**
 * Shows the JVM which classes the client needs, for the class archive that the build makes with
 * {@code -XX:ArchiveClassesAtExit}. Loads every class of the libraries (no server is at hand to make the drivers do
 * it) and then runs every kind of operation on a SQLite database in memory, through the same door as a real run.
 */
public final class ArchiveTraining {
  private static final List<String> PROPERTIES = List.of("workload=knobscope.OpenEndedWorkload", "db=knobscope.TimedDB",
      "jdbc.url=jdbc:sqlite::memory:", "recordcount=1", "readproportion=0.2", "updateproportion=0.2",
      "insertproportion=0.2", "scanproportion=0.2", "readmodifywriteproportion=0.2", "requestdistribution=zipfian",
      "fieldcount=1", "knobscope.warmup.s=0.2", "knobscope.measure.s=0.3", "knobscope.interval.ms=100");

  private ArchiveTraining() {}

  /** Takes the directory of the build, with the jars in {@code lib}. */
  public static void main(String[] args) throws IOException {
    Path build = Path.of(args[0]);
    try (DirectoryStream<Path> jars = Files.newDirectoryStream(build.resolve("lib"), "*.jar")) {
      for (Path jar : jars) {
        loadAll(jar);
      }
    }
    Path directory = Files.createDirectories(build.resolve("training"));
    // The row is YCSB's first record: on a busy machine most operations must succeed, or the run ends as hopeless.
    Path init = Files.write(directory.resolve("init.sql"),
        List.of("create table usertable (YCSB_KEY text primary key, field0 text)",
            "insert into usertable values ('user6284781860667377211', '')"));
    Path readback = Files.writeString(directory.resolve("readback.json"),
        "{\"query\": \"select 'a', 1\", \"each\": {\"cache_size\": \"pragma cache_size\"}}\n");
    Path properties = Files.write(directory.resolve("run.properties"), PROPERTIES);
    Client.main(new String[] {"-t", "-P", properties.toString(), "-p", "knobscope.init=" + init, "-p",
        "knobscope.readback=" + readback, "-p", "knobscope.out=" + directory});
  }

  private static void loadAll(Path jar) throws IOException {
    try (JarFile open = new JarFile(jar.toFile())) {
      for (JarEntry entry : open.stream().toList()) {
        String name = entry.getName();
        if (name.endsWith(".class") && !name.startsWith("META-INF") && !name.endsWith("-info.class")) {
          load(name.substring(0, name.length() - ".class".length()).replace('/', '.'));
        }
      }
    }
  }

  private static void load(String name) {
    try {
      Class.forName(name, false, ArchiveTraining.class.getClassLoader());
    } catch (ClassNotFoundException | LinkageError e) {
      System.err.println("not archived, it extends something that is not there: " + name);
    }
  }
}
