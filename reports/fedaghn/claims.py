"""What FedAGHN's text says, and the order of groups that was registered before any run was made."""

from __future__ import annotations

from bench.grids.experiment import Only
from bench.report.claims import Claim, Claims
from bench.report.measures import TOTAL_MEGABYTES

from .measures import MEASURES

SHARED = ("FedAvg", "FedProx")
"""One model for all, as received."""

ALONE = ("Local", "FedAMP", "pFedHN")
"""Every client by itself, or nearly so."""

TUNED = ("FedAvg-FT", "FedProx-FT")

OTHERS = ("Ditto", "FedRep", "FedCP", "FedPAC", "CFL", "H-FedAMP", "pFedLA", "FedALA")

PERSONALISED = (*TUNED, *OTHERS, "FedAGHN")

RIVALS = (*SHARED, *ALONE, *TUNED, *OTHERS)
"""All but FedAGHN."""

MAIN, REDUCED = ("table1",), ("table1_reduced",)
ABLATION, ABLATION_REDUCED = ("ablation",), ("ablation_reduced",)
WEIGHTS, WEIGHTS_REDUCED = ("collaboration_weights",), ("collaboration_weights_reduced",)

SELF = next(measure for measure in MEASURES if measure.name == "self")

PATHOLOGICAL = "pathological-released"
DIRICHLET = "dirichlet0.1-released"
CIFAR10 = ("cifar10", "cifar10-sample")
NOT_CIFAR10 = ("cifar100", "cifar100-sample", "tiny-imagenet")


def _order(text: str, first: tuple[str, ...], second: tuple[str, ...]) -> Claim:
    return Claim(text, first, second, MAIN, REDUCED)


GROUPS = Claims(
    "groups",
    "registered groups of methods",
    (
        _order("Alone above shared", ALONE, SHARED),
        _order("Personalised above alone", PERSONALISED, ALONE),
        _order("FedAGHN above FedAvg-FT", ("FedAGHN",), ("FedAvg-FT",)),
        _order("FedAMP above Local", ("FedAMP",), ("Local",)),
    ),
    (
        "Registered before any run: groups can be told apart, the order at the top can't. Shared: "
        f"{', '.join(SHARED)} as received; alone: {', '.join(ALONE)}; personalised: all others. Where a place"
        " plans fewer methods, a group is those of them. The last two are differences of single methods. "
        "Kendall's tau-b of all methods stands with the reproduction score, as a description.",
    ),
)

TEXT = Claims(
    "claims",
    "claims of the text",
    (
        Claim(
            "FedAGHN is best on CIFAR-10 with Dirichlet clients",
            ("FedAGHN",),
            RIVALS,
            MAIN,
            REDUCED,
            "Table 1",
            each=True,
            only=Only(dataset=CIFAR10, scenario=(DIRICHLET,)),
        ),
        Claim(
            "FedAGHN is best on CIFAR-100 and Tiny-ImageNet, by either model",
            ("FedAGHN",),
            RIVALS,
            MAIN,
            REDUCED,
            "Table 1",
            each=True,
            only=Only(dataset=NOT_CIFAR10),
        ),
        Claim(
            "FedPAC is above FedAGHN on CIFAR-10 with pathological clients",
            ("FedPAC",),
            ("FedAGHN",),
            MAIN,
            REDUCED,
            "Table 1",
            only=Only(dataset=CIFAR10, scenario=(PATHOLOGICAL,)),
        ),
        Claim(
            "FedAGHN is best however unequal the clients are",
            ("FedAGHN",),
            RIVALS,
            ("table2",),
            (),
            "Table 2",
            each=True,
        ),
        Claim("Local is above FedAvg and FedProx", ("Local",), SHARED, MAIN, REDUCED, "Table 1", each=True),
        Claim(
            "FedAvg and FedProx with fine-tuning are above the other personalised methods",
            TUNED,
            OTHERS,
            MAIN,
            REDUCED,
            "Table 1",
        ),
        Claim(
            "H-FedAMP is above FedAMP in most",
            ("H-FedAMP",),
            ("FedAMP",),
            MAIN,
            REDUCED,
            "Table 1",
            most=True,
        ),
        Claim(
            "pFedLA is above FedALA in most", ("pFedLA",), ("FedALA",), MAIN, REDUCED, "Table 1", most=True
        ),
        Claim(
            "Every part of FedAGHN helps: the whole is above each ablation",
            ("FedAGHN",),
            ("w/o p and q", "frozen p and q", "w/o p", "w/o q", "same p and q in all layers"),
            ABLATION,
            ABLATION_REDUCED,
            "Appendix Table 1",
            each=True,
        ),
        Claim(
            "It is worst without p and q",
            ("frozen p and q", "w/o p", "w/o q", "same p and q in all layers"),
            ("w/o p and q",),
            ABLATION,
            ABLATION_REDUCED,
            "Appendix Table 1",
            each=True,
        ),
        Claim(
            "Lacking p costs more than lacking q",
            ("w/o q",),
            ("w/o p",),
            ABLATION,
            ABLATION_REDUCED,
            "Appendix D.1",
        ),
        Claim(
            "The self weight falls during training",
            ("FedAGHN",),
            ("FedAGHN",),
            WEIGHTS,
            WEIGHTS_REDUCED,
            "Table 4",
            points=("First", "Final"),
            measure=SELF,
        ),
        Claim(
            "The same with the sign of p and q that descends the loss (not the paper's)",
            ("FedAGHN, descent",),
            ("FedAGHN, descent",),
            WEIGHTS,
            WEIGHTS_REDUCED,
            points=("First", "Final"),
            measure=SELF,
        ),
        Claim(
            "A smaller self weight at the start is better: 0.02 above 1/19",
            ("p0 = 0.02",),
            ("p0 = 1/19",),
            ("self_weight",),
            (),
            "Appendix E.2",
        ),
        Claim(
            "FedAGHN needs no more communication than FedAvg (megabytes)",
            ("FedAvg",),
            ("FedAGHN",),
            MAIN,
            REDUCED,
            "text",
            exact=True,
            measure=TOTAL_MEGABYTES,
        ),
    ),
    (
        "The claims are those of the paper's text in our words. Best means above the best of all other "
        "methods there, which the same numbers choose; with margins of 0.02 to 0.31 points published, it was "
        "registered beforehand that such claims can hardly be told.",
    ),
)

CLAIMS = (GROUPS, TEXT)
