import java.nio.file.Path;
import org.neo4j.harness.Neo4j;
import org.neo4j.harness.Neo4jBuilders;

/** Runs a server until its standard input ends; prints its address first. */
public class Harness {
    public static void main(String[] arguments) throws Exception {
        try (Neo4j server = Neo4jBuilders.newInProcessBuilder(Path.of(arguments[0]))
                .withDisabledServer().build()) {
            System.out.println("URI " + server.boltURI());
            System.out.flush();
            while (System.in.read() >= 0) { }
        }
    }
}
