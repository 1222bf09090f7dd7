// Runs before the page is drawn: the colors that were chosen in this browser.
"use strict";
try {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch { /* Without storage the system decides. */ }
