// Live updates: once a second, fetch the page again and replace the contents. Do this only
// while the page is visible, no text is selected and the user has not paused.
"use strict";
(() => {
  const button = document.getElementById("live");
  const plain = document.querySelector(".plain");
  if (new URLSearchParams(location.search).has("refresh")) {
    return; // the page loads itself again as a whole
  }
  let live = true;
  button.hidden = false;
  plain.hidden = true;
  button.addEventListener("click", () => {
    live = !live;
    button.setAttribute("aria-pressed", String(live));
    button.textContent = live ? "Live" : "Paused";
  });
  const replace = (into, from) => {
    const focused = into.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    into.replaceChildren(...from.childNodes);
    if (focused !== null) {
      const again = into.querySelector(`a[href="${CSS.escape(focused)}"]`);
      if (again !== null) {
        again.focus();
      }
    }
  };
  const refresh = async () => {
    try {
      if (live && !document.hidden && getSelection().isCollapsed) {
        const response = await fetch(location.href, { cache: "no-store" });
        if (!response.ok && response.status !== 404) { // 404: the Scheduler was closed
          throw new Error(response.statusText);
        }
        const next = new DOMParser().parseFromString(await response.text(), "text/html");
        if (live) {
          replace(document.querySelector("main"), next.querySelector("main"));
          document.querySelector("header .quiet").replaceWith(next.querySelector("header .quiet"));
        }
        button.title = "";
      }
    } catch (err) {
      button.title = "the last update failed: " + err.message; // the program may have ended
    }
    setTimeout(refresh, 1000);
  };
  setTimeout(refresh, 1000);
})();
