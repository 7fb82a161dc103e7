/** The theme: one accent (petrol), warm grey, Inter, moderate corners. The rest is in base.css. */
import { createTheme, type MantineColorsTuple } from '@mantine/core';
import { text } from './texts/text.ts';

const petrol: MantineColorsTuple = [
  '#e9f6f4',
  '#d3eae7',
  '#a6d6d0',
  '#75c1b8',
  '#4fb0a5',
  '#2b968b',
  '#14776e',
  '#0f5f5c',
  '#0c4c4b',
  '#083a3a',
];

/** Warm; Mantine's own is bluish. */
const gray: MantineColorsTuple = [
  '#faf9f7',
  '#f3f2ef',
  '#e8e6e1',
  '#d8d5ce',
  '#c2beb5',
  '#a29d92',
  '#706b61',
  '#55514a',
  '#3a3733',
  '#23211e',
];

const dark: MantineColorsTuple = [
  '#e6e4df',
  '#c5c2bb',
  '#a6a299',
  '#6f6b64',
  '#45433f',
  '#34322f',
  '#272624',
  '#1d1c1b',
  '#161514',
  '#0f0e0e',
];

/** A header element would be a second banner of the page. */
const windowHeader = { defaultProps: { component: 'div' } };
const closeButtonProps = { 'aria-label': text.shell.close };

export const theme = createTheme({
  colors: { petrol, gray, dark },
  primaryColor: 'petrol',
  primaryShade: { light: 7, dark: 6 },
  autoContrast: true,
  defaultRadius: 'md',
  cursorType: 'pointer',
  fontFamily: '"Inter Variable", system-ui, sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", "JetBrains Mono", "DejaVu Sans Mono", monospace',
  fontSizes: { xs: '0.75rem', sm: '0.8125rem', md: '0.875rem', lg: '1rem', xl: '1.125rem' },
  headings: {
    fontWeight: '620',
    sizes: {
      h1: { fontSize: '1.5rem', lineHeight: '1.25' },
      h2: { fontSize: '1.0625rem', lineHeight: '1.4' },
      h3: { fontSize: '0.9375rem', lineHeight: '1.4' },
    },
  },
  focusRing: 'auto',
  components: {
    Badge: {
      defaultProps: { tt: 'none', fw: 550, radius: 'sm', miw: 'max-content' },
      // Tinted text on its own tint is unreadable.
      styles: { label: { color: 'var(--mantine-color-text)' } },
    },
    Drawer: { defaultProps: { closeButtonProps } },
    DrawerHeader: windowHeader,
    // Its placeholder for the initial focus is a child that menus may not have.
    Menu: { defaultProps: { withInitialFocusPlaceholder: false } },
    Notification: { defaultProps: { closeButtonProps, withBorder: true } },
    Modal: { defaultProps: { closeButtonProps, radius: 'lg', overlayProps: { backgroundOpacity: 0.35 } } },
    ModalHeader: windowHeader,
    Table: { defaultProps: { borderColor: 'var(--line)', highlightOnHoverColor: 'var(--side)' } },
    Tooltip: { defaultProps: { openDelay: 300 } },
  },
});
