"""RST: what Sphinx pages come to, and what is left out."""

from datetime import date

import pytest

from knowledge.errors import Unreadable
from knowledge.parsing import Page
from knowledge.parsing.dispatch import parse

TEXT = """\
.. _start:

Quickstart
==========

:version: 2.1
:date: 2026-03-04

See :ref:`deeper`, :ref:`Install <other>`, :doc:`/patterns/sql-alchemy`,
:class:`~flask.Flask` and :meth:`.run`, :issue:`17`, |undefined|.

.. toctree::
   :maxdepth: 2

   hidden/page

.. note:: Hello *there*.

.. warning::

   Be careful.

.. code-block:: python
   :caption: app.py

   x = 1  # `not` *markup*

.. _deeper:

Deeper
------

.. versionadded:: 1.2
   The thing.

.. py:class:: Queue(maxsize=0)

   A queue.

   .. py:method:: put(item, block=True)

      Put it.

      :param int item: what to put
      :raises ValueError: always

.. tabs::

   .. tab:: Linux

      Use the package.

.. list-table::
   :header-rows: 1

   * - Key
     - Does
   * - F1
     - helps

.. strange:: title
   :option: 1

   Kept all the same.

.. autofunction:: foo

.. include:: ../secret.txt

:math:`a^2` and ``lit`` [1]_

.. [1] A remark.
"""


def page(text: str, name: str = "page.rst") -> Page:
    (only,) = parse(name, text.encode())
    return only


@pytest.fixture(scope="module")
def quickstart() -> Page:
    return page(TEXT)


def test_a_page_says_what_it_is(quickstart: Page) -> None:
    assert (quickstart.title, quickstart.edition) == ("Quickstart", "2.1")
    assert quickstart.last_updated == date(2026, 3, 4)


@pytest.mark.parametrize(
    "part",
    [
        "# Quickstart\n\nSee Deeper, Install, sql alchemy,\n`Flask` and `run()`, 17, |undefined|.",
        "\n\nHello *there*.\n\nWarning:\n\nBe careful.\n\n",
        "app.py:\n\n```python\nx = 1  # `not` *markup*\n```\n\n## Deeper\n\n",
        "Added in version 1.2: The thing.",
        "### class Queue\n\n```\nQueue(maxsize=0)\n```\n\nA queue.\n\n#### put()\n\n",
        "- item:\n  what to put\n- Raises ValueError:\n  always",
        "**Linux**\n\nUse the package.\n\n- Key: F1; Does: helps\n\nKept all the same.",
        "$a^2$ and `lit`",
        "A remark.",
    ],
)
def test_what_a_reader_would_see_is_kept(quickstart: Page, part: str) -> None:
    assert part in quickstart.content


def test_what_only_sphinx_could_say_is_left_out_with_a_warning(quickstart: Page) -> None:
    assert "hidden" not in quickstart.content
    assert quickstart.warnings == [
        "left out, as only Sphinx or a file beside it could say it: autofunction (1), include (1)"
    ]


@pytest.mark.parametrize(
    "directive",
    [
        ".. include:: /etc/hostname",
        ".. include:: /etc/hostname\n   :literal:",
        ".. literalinclude:: /etc/hostname",
        ".. csv-table:: x\n   :file: /etc/hostname",
        ".. raw:: html\n   :file: /etc/hostname",
        ".. raw:: html\n\n   <script>alert(1)</script>",
        ".. image:: /etc/hostname\n   :loading: embed",
        ".. figure:: /etc/hostname\n   :figwidth: image",
        ".. role:: html(raw)\n   :format: html\n\n:html:`<script>`",
    ],
)
def test_no_directive_opens_a_file_or_writes_html(directive: str) -> None:
    with open("/etc/hostname", encoding="utf-8") as file:
        name = file.read().strip()
    content = page(f"Title\n=====\n\nText.\n\n{directive}\n\nEnd.\n").content
    assert name not in content
    assert "<script>alert" not in content
    assert "Text." in content


def test_the_version_of_a_sphinx_project_is_that_of_its_pages() -> None:
    text = "Title\n=====\n\nSince |release|.\n\n.. |release| replace:: 3.1\n"
    assert (page(text).edition, "Since 3.1." in page(text).content) == ("3.1", True)
    assert page(text.replace("Since", ":version: $Revision$\n\nSince")).edition == "3.1"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        (".. comment\n", "there is no text in it"),
        ("x" * 30_000, "it has a line of more than 20,000 characters"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        page(text)


def test_substitutions_that_grow_without_end_are_refused() -> None:
    levels = "".join(f".. |a{n}| replace:: {f'|a{n + 1}| ' * 10}\n" for n in range(12))
    with pytest.raises(Unreadable, match="its substitutions come to more than 10,000"):
        page(f"Text.\n\n|a0|\n\n{levels}\n\n.. |a12| replace:: bomb\n")
