/** The keys of a list: arrows, Shift, Space, X, Ctrl+A, F2, Delete, Escape. The browser handles Enter. */
import { type RefObject, useEffect, useRef } from 'react';

export interface ListKeys {
  readonly count: number;
  /**
   * Selects a row, or with `isRange` all up to it; without `isChosen`, toggles it. Missing: none can be
   * selected.
   */
  readonly choose?: ((index: number, isChosen?: boolean, isRange?: boolean) => void) | undefined;
  readonly chooseAll: () => void;
  /** False: there was no selection. */
  readonly clear: () => boolean;
  /** The focus moved to another row. */
  readonly moved?: (index: number) => void;
  /** Space shows or hides the row's content. Missing: Space selects, as X does. */
  readonly preview?: (index: number) => void;
  readonly rename?: ((index: number) => void) | undefined;
  readonly remove?: ((index: number) => void) | undefined;
}

/** Rows have `aria-rowindex`, from 2, and a link, or else a box or button, that takes the focus. */
export function useListKeys(table: RefObject<HTMLElement | null>, keys: ListKeys): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const element = table.current;
    if (element === null) return;
    const listen = (event: KeyboardEvent) => {
      if (!event.defaultPrevented && !event.altKey && pressed(element, event, latest.current))
        event.preventDefault();
    };
    element.addEventListener('keydown', listen);
    return () => element.removeEventListener('keydown', listen);
  }, [table]);
}

/** True if the key was handled. */
function pressed(element: HTMLElement, event: KeyboardEvent, keys: ListKeys): boolean {
  const { key, shiftKey, ctrlKey, metaKey } = event;
  const target = event.target as HTMLElement;
  if ((ctrlKey || metaKey) && key !== ' ') {
    if (key.toLowerCase() !== 'a' || shiftKey || keys.choose === undefined) return false;
    keys.chooseAll();
    return true;
  }
  const row = target.closest('[aria-rowindex]')?.getAttribute('aria-rowindex');
  const index = row === null || row === undefined ? -1 : Number(row) - 2;
  const way = key === 'ArrowDown' ? 1 : key === 'ArrowUp' ? -1 : 0;
  if (way !== 0) return moved(element, { from: index, to: index + way, isRange: shiftKey }, keys);
  if (key === 'Escape') return keys.clear();
  if (index < 0) return false;
  if (key === ' ' && !ctrlKey && keys.preview !== undefined && target.matches('a')) keys.preview(index);
  else if (isToChoose(key, target)) keys.choose?.(index, undefined, shiftKey);
  else if (key === 'F2' && keys.rename !== undefined) keys.rename(index);
  else if (key === 'Delete' && keys.remove !== undefined) keys.remove(index);
  else return false;
  return true;
}

/** X selects from every part of a row but a text field; Ctrl+Space likewise, where Space previews. */
const isToChoose = (key: string, target: HTMLElement) =>
  key === ' '
    ? target.matches('a')
    : key.toLowerCase() === 'x' && !target.matches('input:not([type=checkbox])');

interface Move {
  readonly from: number;
  readonly to: number;
  readonly isRange: boolean;
}

function moved(element: HTMLElement, { from, to, isRange }: Move, keys: ListKeys): boolean {
  if (to < 0 || to >= keys.count) return false;
  if (isRange && from >= 0) {
    keys.choose?.(from, true);
    keys.choose?.(to, true, true);
  }
  const row = element.querySelector(`[aria-rowindex="${to + 2}"]`);
  (row?.querySelector<HTMLElement>('a') ?? row?.querySelector<HTMLElement>('input, button'))?.focus();
  if (!isRange) keys.moved?.(to);
  return true;
}
