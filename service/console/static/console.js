// Live numbers, a box that ticks all rows, and a button that copies. The page works
// without this script.
"use strict";
const page = document.currentScript;
const numbers = document.querySelectorAll("[data-number]");
if (numbers.length > 0) {
	setInterval(async () => {
		if (document.hidden) return;
		try {
			const answer = await fetch(page.dataset.numbers, { headers: { Accept: "application/json" } });
			if (!answer.ok) return;
			const values = await answer.json();
			for (const e of numbers) if (e.dataset.number in values) e.textContent = values[e.dataset.number];
		} catch { /* the next call may succeed */ }
	}, 2000);
}
for (const all of document.querySelectorAll("[data-tick-all]")) {
	all.hidden = false;
	all.addEventListener("change", () => {
		for (const box of document.querySelectorAll("input[name=key]")) box.checked = all.checked;
	});
}
for (const button of document.querySelectorAll("[data-copy]")) {
	button.hidden = false;
	button.addEventListener("click", async () => {
		await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
		button.textContent = "Copied";
	});
}
const work = document.querySelector("[data-reload]");
if (work) setTimeout(() => location.reload(), 1000);
