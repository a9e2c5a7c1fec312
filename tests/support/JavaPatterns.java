import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.regex.Pattern;

/** Reads a pattern and names a line, all in Base64; writes a line of 0 and 1 for its names, or what Java says of it. */
class JavaPatterns {
    public static void main(String[] arguments) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(judged(line.split(" ", -1)));
        }
        out.flush();
    }

    private static String judged(String[] words) {
        try {
            var pattern = Pattern.compile(text(words[0]));
            var found = new StringBuilder();
            for (int at = 1; at < words.length; at++) {
                found.append(pattern.matcher(text(words[at])).matches() ? '1' : '0');
            }
            return found.toString();
        } catch (RuntimeException | StackOverflowError error) {
            return "refused " + String.valueOf(error.getMessage()).lines().findFirst().orElse("");
        }
    }

    private static String text(String word) {
        return new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8);
    }
}
