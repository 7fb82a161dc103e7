/** Keys of every page: search, what is listed, and the sheet that tells all of them. */
import { useEffect, useState } from 'react';
import { openPalette } from '../palette/palette.tsx';
import { lazyPart } from '../parts/lazy-part.tsx';

const KeySheet = lazyPart(() => import('./key-sheet.tsx').then((made) => made.KeySheet));

/** Set while the shell is there. */
let openSheet: (() => void) | undefined;

export const openKeySheet = () => openSheet?.();

export function Shortcuts() {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    openSheet = () => setOpen(true);
    const listen = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.altKey || event.isComposing || !pressed(event)) return;
      event.preventDefault();
      event.stopPropagation();
    };
    // Before the editor, which has a meaning of its own for some of them.
    window.addEventListener('keydown', listen, { capture: true });
    return () => {
      openSheet = undefined;
      window.removeEventListener('keydown', listen, { capture: true });
    };
  }, []);
  return isOpen ? <KeySheet onClose={() => setOpen(false)} /> : null;
}

/** True if the key did something. */
function pressed({ key, target, ctrlKey, metaKey, shiftKey }: KeyboardEvent): boolean {
  const element = target instanceof Element ? target : document.body;
  // The shell of a machine has all keys.
  if (element.closest('.xterm') !== null) return false;
  if (ctrlKey || metaKey) {
    if (key.toLowerCase() !== 'k' || shiftKey) return false;
    openPalette();
    return true;
  }
  const isTyping = element.closest(
    'input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable=true]',
  );
  const isCovered = document.querySelector('[role=dialog][aria-modal=true], [role=menu]') !== null;
  if (isTyping !== null || isCovered) return false;
  if (key === '?') openKeySheet();
  else if (key === '/') search();
  else return false;
  return true;
}

/** In the list that is shown, else everywhere. */
function search(): void {
  const field = document.querySelector<HTMLInputElement>('main input[type=search]');
  if (field === null) openPalette();
  field?.focus();
  field?.select();
}
