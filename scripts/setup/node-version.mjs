// Read by whatever Node there is: no syntax here that an old one would not parse.
const OLDEST = [20, 12];

/** Why this Node will not do; undefined if it will. */
export function nodeVersionProblem(version) {
  const [major, minor] = version.replace(/^v/, '').split('.').map(Number);
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return undefined;
  return (
    `errand: this is Node ${version}, and errand needs ${OLDEST.join('.')} or newer. ` +
    'Install a current Node (nodejs.org, or "nvm install --lts") and run the same command again.'
  );
}

/** Loads and runs a script's `main` if Node is new enough, and turns an expected failure into one line and code 2. */
export function enter(load) {
  const problem = nodeVersionProblem(process.version);
  if (problem !== undefined) {
    console.error(problem);
    process.exit(2);
  }
  Promise.all([load(), import('./failure.mjs')]).then(([script, { reportFailure }]) =>
    script.main(process.argv.slice(2)).catch(reportFailure),
  );
}
