"""Trains the layer by which the router tells questions of billing from all others.

`python3 -m assistant.lab.routes_fit FOLDER` reads three public sets of intents below the folder,
each a checkout named <owner>+<repository>, adds the exemplars of the routes, and writes
`agents/intake/billing.npz`; with CROSS_LINGUAL=on, for vectors of the multilingual model,
`agents/intake/billing_multilingual.npz`. The same sets give the same weights.
"""

import csv
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import django
import numpy as np
from numpy.typing import NDArray

from agents.intake.exemplars import lines
from agents.intake.route_likelihood import BILLING, KINDS, OTHER, layer
from assistant.lab.softmax_regression import save
from knowledge.embedding import encode_any_language
from knowledge.trained_layers import Classifier, LinearLayer, softmax

ROUNDS, SPEED, DECAY = 600, 0.5, 1e-4
# What all exemplars of a kind weigh together, against all that the sets have of it. They are few,
# and the only ones in other languages than English.
EXEMPLARS = 0.5

CLINC = "clinc+oos-eval/data/data_full.json"  # CC BY 3.0
BANKING = "PolyAI-LDN+task-specific-datasets/banking_data/train.csv"  # CC BY 4.0
HINT3 = "hellohaptik+HINT3/dataset/v2/train/*_train.csv"  # ODbL 1.0
# Intents about what a customer is charged, pays, or gets back.
MONEY = frozenset(
    {
        *("bill_balance", "bill_due", "pay_bill", "card_declined"),
        *("extra_charge_on_statement", "card_payment_fee_charged", "transaction_charged_twice"),
        *("request_refund", "Refund_not_showing_up", "reverted_card_payment?"),
        *("card_payment_not_recognised", "direct_debit_payment_not_recognised"),
        *("transfer_fee_charged", "top_up_by_card_charge", "cash_withdrawal_charge"),
        *("exchange_charge", "declined_card_payment"),
        *("REFUNDS_RETURNS_REPLACEMENTS", "PAYMENT_AND_BILL", "REFUND_OF_ADDED_CASH"),
        *("REFUND_OF_WRONG_AMOUNT", "ACCOUNT_BALANCE_DEDUCTED", "DEDUCTED_AMOUNT_NOT_RECEIVED"),
    }
)
# Intents about money that only a bank has to do with, and what may be either.
LEFT_OUT = frozenset(
    {
        *("balance", "transactions", "spending_history", "min_payment", "international_fees"),
        *("income", "taxes", "w2", "direct_deposit", "payday", "report_fraud", "order_status"),
        *("credit_limit", "credit_limit_change", "interest_rate", "apr", "cancel", "transfer"),
        *("card_payment_wrong_exchange_rate", "top_up_by_bank_transfer_charge"),
        *(
            "wrong_amount_of_cash_received",
            "pending_card_payment",
            "cash_withdrawal_not_recognised",
        ),
        *("wrong_exchange_rate_for_cash_withdrawal", "top_up_reverted", "terminate_account"),
        *("cancel_transfer", "pending_cash_withdrawal", "declined_cash_withdrawal"),
        *("NO_NODES_DETECTED", "CANCEL_ORDER", "RETURN_EXCHANGE", "COD", "EMI", "OFFERS"),
        *("MATTRESS_COST", "WITHDRAWAL_STATUS", "CHECK_DEPOSIT_STATUS", "UNUTILIZED_MONEY"),
        *("100_NIGHT_TRIAL_OFFER", "WITHDRAWAL_TIME", "INSTANT_WITHDRAWAL", "WINNINGS"),
        *("LESS_WINNINGS_AMOUNT", "WITHDRAWAL_INTRO", "CHECK_WALLET_BALANCE", "CASH_BONUS"),
    }
)


class Text(NamedTuple):
    """A text of a kind."""

    text: str
    kind: str


def labelled(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the texts of the sets with their intents."""
    data = json.loads((folder / CLINC).read_text("utf-8"))
    for part in ("train", "val", "oos_train", "oos_val"):
        yield from ((text, intent) for text, intent in data[part])
    for path in sorted([folder / BANKING, *folder.glob(HINT3)]):
        with path.open(encoding="utf-8-sig", newline="") as file:
            _header, *rows = csv.reader(file)
            yield from ((text, intent) for text, intent, *_ in rows)


def texts_of(folder: Path) -> tuple[list[Text], list[Text]]:
    """Return the texts of the sets, and the exemplars."""
    found = [
        Text(text, BILLING if intent in MONEY else OTHER)
        for text, intent in labelled(folder)
        if intent not in LEFT_OUT
    ]
    exemplars = [Text(text, BILLING) for text in lines("route_billing")]
    for name in ("route_documentation", "route_fallback"):
        exemplars += [Text(text, OTHER) for text in lines(name)]
    return list(dict.fromkeys(found)), exemplars


def weights_of(kinds: Sequence[str], share: float) -> NDArray[np.float32]:
    """Return what a text of each of these kinds weighs: both kinds have half of the share."""
    count = Counter(kinds)
    return np.array([share / 2 / count[kind] for kind in kinds], np.float32)


def fit(
    vectors: NDArray[np.float32], kinds: NDArray[np.int64], weights: NDArray[np.float32]
) -> Classifier:
    """Return the logistic regression of kinds on vectors, by descent with Adam."""
    inputs = np.hstack([vectors, np.ones((len(vectors), 1), np.float32)])
    dense = np.zeros((inputs.shape[1], len(KINDS)), np.float32)
    mean, square = np.zeros_like(dense), np.zeros_like(dense)
    for step in range(1, ROUNDS + 1):
        error = softmax(inputs @ dense)
        error[np.arange(len(kinds)), kinds] -= 1
        slope = inputs.T @ (error * weights[:, None]) + DECAY * dense
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        speed = SPEED * (1 - step / (ROUNDS + 1))
        dense -= speed * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    no_words = LinearLayer(KINDS, np.zeros((1, 2), np.int8), np.ones(()), dense[-1])
    return Classifier(no_words, dense[:-1].T)


def main() -> None:
    """Train on the sets of a folder, and write the layer."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "assistant.settings")
    django.setup()
    found, exemplars = texts_of(Path(sys.argv[1]))
    texts = found + exemplars
    shares = ((found, 1 - EXEMPLARS), (exemplars, EXEMPLARS))
    weights = np.concatenate(
        [weights_of([text.kind for text in part], share) for part, share in shares]
    )
    vectors = encode_any_language([text.text for text in texts])
    kinds = np.array([KINDS.index(text.kind) for text in texts], np.int64)
    words, trained = fit(vectors, kinds, weights)
    save(words, layer(), weights=trained.astype(np.float16))
    sys.stdout.write(
        f"{len(found):,} texts of the sets and {len(exemplars)} exemplars: {layer()}\n"
    )


if __name__ == "__main__":
    main()
