/** Keyboard shortcuts of every page: palette, list search, and the sheet that lists them. */
import { useEffect, useState } from 'react';
import { openPalette } from '../palette/palette.tsx';
import { lazyPart } from '../parts/lazy-part.tsx';

const KeySheet = lazyPart(() => import('./key-sheet.tsx').then((made) => made.KeySheet));

/** Set while the shell is mounted. */
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
    // Handled before the editor, which uses some of these keys itself.
    window.addEventListener('keydown', listen, { capture: true });
    return () => {
      openSheet = undefined;
      window.removeEventListener('keydown', listen, { capture: true });
    };
  }, []);
  return isOpen ? <KeySheet onClose={() => setOpen(false)} /> : null;
}

/** True if the key was handled. */
function pressed({ key, target, ctrlKey, metaKey, shiftKey }: KeyboardEvent): boolean {
  const element = target instanceof Element ? target : document.body;
  // In a machine's console all keys go to the guest.
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

/** Searches the displayed list, else everything. */
function search(): void {
  const field = document.querySelector<HTMLInputElement>('main input[type=search]');
  if (field === null) openPalette();
  field?.focus();
  field?.select();
}
