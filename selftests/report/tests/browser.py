#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Look at pages of the report in headless chromium: browser.py PAGE… (KTAP on stdout).

For each page: no message of error on the console and nothing fetched; nothing that makes the page wider than
a screen of 360 or 1200 px, nor text that cannot be read against its ground, each light and dark; landmarks,
headings, names and tables as a screen reader needs them; all that can be operated or scrolled is reached by Tab.
Then the first page again with one planted fault at a time: each has to be found, by the check that is for it.

Runs in the root that virtme/browser.sh makes. Exit: 0 all passed, 1 some did not.
"""

import os
import re
import sys
import tempfile

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

WIDTHS = (360, 1200)
SCHEMES = ("light", "dark")

# WCAG 2.2, 1.4.3: relative luminance and contrast of text below 18 pt, 4.5:1.
CONTRAST = """
const channel = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const light = c => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
const colour = text => text.match(/[\\d.]+/g).map(Number);
const ground = e => {
	for (; e; e = e.parentElement) {
		const c = colour(getComputedStyle(e).backgroundColor);
		if (c.length < 4 || c[3] > 0) return c;
	}
	return [255, 255, 255];
};
const said = new Set(), walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
let texts = 0;
while (walk.nextNode()) {
	const e = walk.currentNode.parentElement;
	if (!walk.currentNode.data.trim() || e.closest('title, desc, script, style')) continue;
	const inside = e.closest('svg'), style = getComputedStyle(e);
	const back = inside ? colour(getComputedStyle(inside.querySelector('rect')).fill) : ground(e);
	const [a, b] = [light(colour(inside ? style.fill : style.color)), light(back)];
	const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
	texts++;
	if (ratio < 4.5) said.add(`${e.tagName}.${e.getAttribute('class')}: contrast ${ratio.toFixed(2)}`);
}
return texts ? [...said] : ['no text at all'];
"""

OVERFLOW = """
const wide = document.documentElement.clientWidth, root = document.scrollingElement, said = [];
if (root.scrollWidth > wide) said.push(`the page is ${root.scrollWidth} px wide on a screen of ${wide}`);
for (const e of document.body.querySelectorAll('*')) {
	if (e.closest('.scroll') && !e.matches('.scroll') || e.matches('.skip')) continue;
	const right = e.getBoundingClientRect().right;
	if (right > wide + 0.5) said.push(`${e.tagName} ${e.id || e.className} ends at ${Math.round(right)} px of ${wide}`);
}
return said;
"""

FIGURES = """
const said = [], figures = [...document.querySelectorAll('main svg')];
if (!figures.length) said.push('no figure at all');
for (const svg of figures) {
	const section = svg.closest('section'), name = section && section.getAttribute('aria-labelledby');
	const after = t => svg.compareDocumentPosition(t) & Node.DOCUMENT_POSITION_FOLLOWING;
	const table = section && [...section.querySelectorAll('table')].find(after);
	const text = svg.querySelector('title')?.textContent;
	if (!table) { said.push(`${text}: no table after it in its section`); continue; }
	if (!table.querySelector('tbody tr')) said.push(`${text}: its table is empty`);
	// What the figure's key and bars name has to be a row.
	const rows = [...table.querySelectorAll('tbody tr')].map(r => r.textContent).join('\\n');
	for (const t of svg.querySelectorAll('text')) {
		const key = t.textContent.match(/^(.*), (?:max|min) /);
		if (key && !rows.includes(key[1])) said.push(`${name}: ${key[1]} is drawn and not in the table`);
	}
}
return said;
"""

READER = """
const said = [], all = s => [...document.querySelectorAll(s)];
const one = (s, what) => { if (all(s).length !== 1) said.push(`${all(s).length} of ${what}`); };
one('main', 'main'); one('h1', 'h1'); one('header', 'header'); one('nav[aria-label]', 'a nav with a name');
if (!document.documentElement.lang) said.push('the page says no language');
if (!document.title) said.push('the page has no title');
let level = 0;
for (const h of all('h1, h2, h3, h4, h5, h6')) {
	const n = Number(h.tagName[1]);
	if (n > level + 1) said.push(`${h.tagName} '${h.textContent}' follows h${level}`);
	if (!h.textContent.trim()) said.push(`an empty ${h.tagName}`);
	level = n;
}
const ids = all('[id]').map(e => e.id);
for (const id of new Set(ids)) if (ids.filter(i => i === id).length > 1) said.push(`id ${id} twice`);
const named = e => (e.getAttribute('aria-label') || '').trim() ||
	(e.getAttribute('aria-labelledby') || '').split(/\\s+/).map(i => document.getElementById(i)?.textContent || '').join('').trim();
for (const e of all('section, [role=region]')) if (!named(e)) said.push(`a ${e.tagName} without a name`);
const regions = all('[role=region]').map(named);
for (const n of new Set(regions)) if (regions.filter(r => r === n).length > 1) said.push(`two regions are called ${n}`);
for (const e of all('svg')) if (e.getAttribute('role') !== 'img' || !e.querySelector(':scope > title')?.textContent.trim() ||
	!e.querySelector(':scope > desc')?.textContent.trim()) said.push('a picture without role, title or description');
for (const e of all('img')) if (!e.alt) said.push('an img without alt');
for (const e of all('a, button, summary')) if (!named(e) && !e.textContent.trim()) said.push(`a ${e.tagName} without a text`);
for (const e of all('a[href^="#"]')) if (!document.getElementById(decodeURIComponent(e.hash.slice(1)))) said.push(`${e.hash} leads nowhere`);
for (const t of all('table')) {
	if (!t.caption?.textContent.trim()) said.push('a table without a caption');
	if (!t.tHead || [...t.tHead.querySelectorAll('th')].some(h => h.scope !== 'col')) said.push('a table without column heads');
	if ([...t.tBodies].some(b => [...b.rows].some(r => !r.querySelector('th[scope=row]')))) said.push('a row without a head');
	const columns = t.tHead ? t.tHead.rows[0].cells.length : 0;
	if ([...t.tBodies].some(b => [...b.rows].some(r => r.cells.length !== columns))) said.push('a row that does not fit its heads');
}
return said;
"""

# What the keyboard has to reach: what is operated, and what scrolls in its own box.
STOPS = """
const stops = [...document.querySelectorAll('a[href], button, summary, input, select, [onclick], body *')].filter(e => {
	if (e.checkVisibility && !e.checkVisibility({contentVisibilityAuto: true})) return false;
	if (e.matches('a[href], button, summary, input, select, [onclick]')) return true;
	return !e.closest('svg') && e.scrollWidth > e.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(e).overflowX);
});
window.stops = [...new Set(stops)];
document.activeElement?.blur();
window.scrollTo(0, 0);
return window.stops.length;
"""
STOP = """
const e = document.activeElement, at = window.stops.indexOf(e), style = getComputedStyle(e);
return [e === document.body, at, style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0, e.outerHTML.slice(0, 80)];
"""
NAMES = "return arguments[0].map(i => window.stops[i].outerHTML.slice(0, 80))"


def start():
    options = webdriver.ChromeOptions()
    # The page is ours, and the root of a chroot is who we are: chromium's sandbox refuses that.
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                 "--disable-background-networking", "--no-first-run", "--user-data-dir=" + tempfile.mkdtemp()):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService("/usr/bin/chromedriver")
    return webdriver.Chrome(options=options, service=service)


def open_page(driver, path, width, scheme):
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                           {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                           {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    driver.get("file://" + os.path.abspath(path))
    dark = driver.execute_script("return matchMedia('(prefers-color-scheme: dark)').matches")
    inner = driver.execute_script("return innerWidth")
    if dark != (scheme == "dark"):
        raise RuntimeError(f"the browser did not take the scheme {scheme}")
    if width != inner and width > 600:
        raise RuntimeError(f"the browser's screen is {inner} px, not {width}")


def console(driver, path):
    said = []
    for width, scheme in ((WIDTHS[0], SCHEMES[0]), (WIDTHS[1], SCHEMES[1])):
        driver.get_log("browser"), driver.get_log("performance")
        open_page(driver, path, width, scheme)
        said += [m["message"] for m in driver.get_log("browser") if m["level"] in ("SEVERE", "WARNING")]
        for entry in driver.get_log("performance"):
            if '"Network.requestWillBeSent"' in entry["message"] and '"url":"http' in entry["message"]:
                said.append("something is fetched: " + entry["message"][:300])
    return said


def both(script, widths=WIDTHS):
    def look(driver, path):
        said = []
        for width in widths:
            for scheme in SCHEMES:
                open_page(driver, path, width, scheme)
                said += [f"{width} px, {scheme}: {s}" for s in driver.execute_script(script)]
        return said
    return look


def once(script):
    def look(driver, path):
        open_page(driver, path, WIDTHS[1], SCHEMES[0])
        return driver.execute_script(script)
    return look


def keyboard(driver, path):
    """Tab from the top until the page is left: each stop once, in the page's order, and seen to be there."""
    open_page(driver, path, WIDTHS[0], SCHEMES[0])
    stops = driver.execute_script(STOPS)
    said, reached = [], []
    for _ in range(stops + 50):
        ActionChains(driver).send_keys(Keys.TAB).perform()
        outside, at, outlined, html = driver.execute_script(STOP)
        if outside or (at >= 0 and at in reached):
            break
        if not outlined:
            said.append("no outline on the focus: " + html)
        if at >= 0:
            reached.append(at)
    else:
        said.append("Tab does not come to an end")
    missed = [i for i in range(stops) if i not in reached]
    said += ["not reached: " + html for html in driver.execute_script(NAMES, missed[:5])]
    return said if stops else ["nothing to reach"]


CHECKS = {
    "console": ("no error on the console, nothing fetched", console),
    "overflow": ("no overflow at 360 and 1200 px, light and dark", both(OVERFLOW)),
    "contrast": ("text against its ground at least 4.5:1, light and dark", both(CONTRAST, WIDTHS[:1])),
    "figures": ("every figure has its table", once(FIGURES)),
    "reader": ("landmarks, headings, names and tables for screen readers", once(READER)),
    "keyboard": ("everything is reached by Tab, and shows it", keyboard),
}


def cut(text, begin, end, instead=""):
    """`text` with the first piece from `begin` to `end` replaced."""
    at = text.index(begin)
    return text[:at] + instead + text[text.index(end, at) + len(end):]


def swap(text, old, new):
    """The first `old` made `new`."""
    return text.replace(old, new, 1)


def no_table(page):
    at = page.index("<svg ")
    return page[:at] + cut(page[at:], "<table>", "</table>", "<p>no table</p>")


def no_title(page):
    at = page.index("<svg ")
    return page[:at] + cut(page[at:], "<title>", "</title>")


FAULTS = [
    ("an over-wide element", "overflow", lambda p: swap(p, "<main ", '<div style="width:1300px">wide</div><main ')),
    ("a box of 400 px, too wide for a phone alone", "overflow",
     lambda p: swap(p, "<main ", '<div style="width:400px">wide</div><main ')),
    ("a line that does not wrap, in the dark only", "overflow",
     lambda p: swap(p, "</style>", "@media (prefers-color-scheme: dark) { header p { white-space: nowrap } }</style>")),
    ("an error on the console", "console", lambda p: swap(p, "</body>", "<script>no.such.thing()</script></body>")),
    ("a picture that is not there", "console", lambda p: swap(p, "</main>", '<img alt="x" src="none.png"></main>')),
    ("a figure without its table", "figures", no_table),
    ("a variant that is drawn and not in the table", "figures",
     lambda p: re.sub(r"(<text[^>]*>[^<]*), max ", r"\1 of another run, max ", p, count=1)),
    ("a picture without a title", "reader", no_title),
    ("two main landmarks", "reader", lambda p: swap(p, "</main>", "</main><main>again</main>")),
    ("a heading that skips a level", "reader", lambda p: swap(p, "<h2", "<h4").replace("</h2>", "</h4>", 1)),
    ("a table without a caption", "reader", lambda p: cut(p, "<caption>", "</caption>")),
    ("a link that leads nowhere", "reader", lambda p: swap(p, 'href="#run"', 'href="#ran"')),
    ("pale text in the dark", "contrast", lambda p: swap(p, "--soft: #b3bcc5", "--soft: #40474e")),
    ("a box that scrolls and is not reached", "keyboard",
     lambda p: swap(p, 'class="scroll" role="region" tabindex="0"', 'class="scroll" role="region" tabindex="-1"')),
    ("a focus that is not seen", "keyboard", lambda p: swap(p, "outline: 3px solid var(--link)", "outline: none")),
]


def main(pages):
    results = []

    def result(good, name, said=()):
        results.append(good)
        for line in list(said)[:8]:
            print("# " + line.replace("\n", " "))
        print(f"{'ok' if good else 'not ok'} {len(results)} {name}", flush=True)

    print("TAP version 13")
    driver = start()
    try:
        for page in pages:
            for name, check in CHECKS.values():
                said = check(driver, page)
                result(not said, f"{page}: {name}", said)
        with open(pages[0], encoding="utf-8") as file:
            good = file.read()
        for number, (name, check, plant) in enumerate(FAULTS):
            path = os.path.join("out", "report-test", f"fault-{number}.html")
            bad = plant(good)
            if bad == good:
                raise RuntimeError(f"'{name}' could not be planted")
            with open(path, "w", encoding="utf-8") as file:
                file.write(bad)
            found = CHECKS[check][1](driver, path)
            result(found, f"planted: {name}: found", [] if found else ["the check of '" + check + "' said nothing"])
    finally:
        driver.quit()
    print(f"1..{len(results)}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: browser.py PAGE…")
    sys.exit(main(sys.argv[1:]))
