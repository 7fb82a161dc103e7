/**
 * Typing over a selection, handled by the editor itself: Chromium keeps the look of the replaced text in
 * an inline style, which the page's policy forbids, with an error in the browser's console.
 */
import { type Extension, Prec } from '@codemirror/state';
import { EditorView } from '@codemirror/view';

export const typedOver: Extension = Prec.lowest(
  EditorView.domEventHandlers({
    beforeinput: (event, view) => {
      const { main } = view.state.selection;
      const { data, inputType } = event;
      if (inputType !== 'insertText' || data === null || main.empty || view.composing) return false;
      const insert = () => view.state.update(view.state.replaceSelection(data), { userEvent: 'input.type' });
      const isTaken = view.state
        .facet(EditorView.inputHandler)
        .some((handle) => handle(view, main.from, main.to, data, insert));
      if (!isTaken) view.dispatch(insert());
      event.preventDefault();
      return true;
    },
  }),
);
