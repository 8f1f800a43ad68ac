
const view = document.getElementById("view"), said = document.getElementById("said");
for (const button of document.querySelectorAll("button"))
  button.onclick = () => fetch("/warehouse?is=" + button.dataset.is, {method: "POST"}).then(follow, ended);
function ended() { said.textContent = "The demonstration has ended."; }
async function follow() {
  const answer = await fetch("/view");
  if (answer.ok) view.innerHTML = await answer.text();
}
(async () => {
  for (;;) {
    try { await follow(); } catch { return ended(); }
    await new Promise(next => setTimeout(next, 1000));
  }
})();
