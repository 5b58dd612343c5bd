package knobscope.tpcc;

/** The five transactions: cards in a deck of a hundred, keying and mean think time in seconds (clause 5.2.5.7). */
enum Kind {
  NEW_ORDER(45, 18, 12),
  PAYMENT(43, 3, 12),
  ORDER_STATUS(4, 2, 10),
  DELIVERY(4, 2, 5),
  STOCK_LEVEL(4, 2, 5);

  final int cards;
  final int keyingS;
  final int thinkS;

  Kind(int cards, int keyingS, int thinkS) {
    this.cards = cards;
    this.keyingS = keyingS;
    this.thinkS = thinkS;
  }

  /** A transaction of this kind with new input data. */
  Transaction draw(Chance chance, Scale scale, Mix mix, int warehouse, int district) {
    return switch (this) {
      case NEW_ORDER -> NewOrder.draw(chance, scale, mix, warehouse);
      case PAYMENT -> Payment.draw(chance, mix, warehouse);
      case ORDER_STATUS -> OrderStatus.draw(chance, warehouse);
      case DELIVERY -> Delivery.draw(chance, warehouse);
      case STOCK_LEVEL -> StockLevel.draw(chance, warehouse, district);
    };
  }
}
