/** SQLite files that survive a full disk, a power loss and damage. See README.md. */
export { DamagedData, damageWatch, isDamage, noteDamage } from './data-damage.ts';
export { DurableLog } from './durable-log.ts';
export { DiskFull, HOST_DISK_FULL, hostSpace } from './host-space.ts';
export { isShrinkable, shrinkFile } from './shrinking.ts';
export { isBusy, isCorrupt, isFull, sqliteErrorName } from './sqlite-error.ts';
