// Which device this tab is. A device number is random, belongs to one name, and is held by one tab at a time: a
// reload keeps it, a second tab gets another, and a tab opened later takes up one that no tab holds, so that what was
// sent to it meanwhile arrives. Knows nothing of conversations.

/** How long to wait for a device that the page before a reload may still hold. */
const RELEASE_MS = 1500;

function randomDevice(crypto) {
  // 0 is avoided only because it reads like "none".
  return crypto.getRandomValues(new Uint32Array(1))[0] || 1;
}

/** Promises true when this tab now holds the device until it is closed. */
function hold(locks, name, device, wait) {
  return new Promise((resolve) => {
    const options = wait ? { signal: AbortSignal.timeout(RELEASE_MS) } : { ifAvailable: true };
    locks
      .request(`throng/${name}/${device}`, options, (lock) => {
        resolve(lock !== null);
        return lock === null ? undefined : new Promise(() => {});
      })
      .catch(() => resolve(false));
  });
}

/**
 * The device of this tab for `name`. `tab` and `profile` hold values for the tab (session storage) and for the browser
 * profile (local storage). Without locks (no secure context) a tab only knows its own device.
 */
export async function claimDevice({ name, tab, profile, locks = navigator.locks, crypto = globalThis.crypto }) {
  const mine = tab.get(`device/${name}`);
  const known = profile.get(`devices/${name}`, []);
  if (locks === undefined) return remember(mine ?? randomDevice(crypto));
  if (mine !== undefined && (await hold(locks, name, mine, true))) return remember(mine);
  for (const device of known) {
    if (device !== mine && (await hold(locks, name, device, false))) return remember(device);
  }
  const fresh = randomDevice(crypto);
  await hold(locks, name, fresh, false);
  return remember(fresh);

  function remember(device) {
    tab.put(`device/${name}`, device);
    if (!known.includes(device)) profile.put(`devices/${name}`, [...known, device]);
    return device;
  }
}
