package knobscope.tpcc;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Shuffled cards, a hundred by default, dealt one by one and shuffled again: the mix holds exactly (clause 5.2.4.2). */
final class Deck {
  private final Chance chance;
  private final List<Kind> cards = new ArrayList<>();
  private int dealt;

  Deck(Chance chance, Mix mix) {
    this.chance = chance;
    mix.cards().forEach((kind, count) -> cards.addAll(Collections.nCopies(count, kind)));
    shuffle();
  }

  Kind next() {
    if (dealt == cards.size()) {
      shuffle();
    }
    return cards.get(dealt++);
  }

  private void shuffle() {
    for (int i = cards.size() - 1; i > 0; i--) {
      Collections.swap(cards, i, chance.between(0, i));
    }
    dealt = 0;
  }
}
