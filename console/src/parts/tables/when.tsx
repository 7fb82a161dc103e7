/** A time of the API (`2026-01-31 09:30:00`, UTC) in the reader's zone; the exact UTC on hover. */
import { useSyncExternalStore } from 'react';
import { readerLocales } from '../../texts/reader-locales.ts';
import { text } from '../../texts/text.ts';
import { createStore } from '../store.ts';

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;
const relative = new Intl.RelativeTimeFormat(text.locale, { numeric: 'auto' });
const absolute = new Intl.DateTimeFormat(readerLocales, { dateStyle: 'medium', timeStyle: 'short' });

/** ms since 1970. */
function timeOf(at: string): number {
  return Date.parse(`${at.replace(' ', 'T')}Z`);
}

/** `3 minutes ago`, or the date if it is more than a week away. */
function sayTime(ms: number, now = Date.now()): string {
  const seconds = Math.round((ms - now) / 1000);
  // Rounded: a day that has just begun counts as a day.
  const [minutes, hours, days] = [MINUTE, HOUR, DAY].map((unit) => Math.round(seconds / unit)) as [
    number,
    number,
    number,
  ];
  if (Math.abs(seconds) < MINUTE) return relative.format(0, 'second');
  if (Math.abs(minutes) < 60) return relative.format(minutes, 'minute');
  if (Math.abs(hours) < 24) return relative.format(hours, 'hour');
  if (Math.abs(days) < 7) return relative.format(days, 'day');
  return absolute.format(ms);
}

/** Changes every half minute while the page is visible. */
const minute = createStore(0);
setInterval(() => document.hidden || minute.set(minute.get() + 1), 30_000);
document.addEventListener('visibilitychange', () => minute.set(minute.get() + 1));

export function When({ at }: { at: string | null | undefined }) {
  useSyncExternalStore(minute.subscribe, minute.get);
  if (at === null || at === undefined) return <span className="soft">{text.shell.never}</span>;
  const ms = timeOf(at);
  return (
    <time dateTime={new Date(ms).toISOString()} title={`${at} UTC`}>
      {sayTime(ms)}
    </time>
  );
}
