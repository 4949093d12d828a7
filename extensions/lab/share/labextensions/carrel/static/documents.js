// The open documents of the application.

// Save the open documents with changes, in visible tabs or not; those that `wanted` selects by path.
export const saveDocuments = async (app, documents, wanted = () => true) => {
  const contexts = new Set();
  for (const widget of app.shell.widgets("main")) {
    const context = documents.contextForWidget(widget);
    if (context && context.model.dirty && !context.model.readOnly && wanted(context.localPath)) contexts.add(context);
  }
  const failed = [];
  for (const context of contexts) {
    try {
      await context.save();
    } catch {
      // The application shows the reason in its own dialog; continue with the other documents.
      failed.push(context.path);
    }
  }
  return { saved: contexts.size - failed.length, failed };
};

// Whether a path is in a folder, at any depth.
export const isIn = (path, folder) => path === folder || path.startsWith(`${folder}/`);

// Show a folder; pages of Notebook have no file browser beside a document.
export const openFolder = (app, site, path) => {
  const command = "filebrowser:go-to-path";
  if (app.commands.hasCommand(command)) return app.commands.execute(command, { path });
  return window.open(site.treePage(path), "_blank", "noopener");
};

// Open a document by its path; returns its widget.
export const openDocument = (app, path) => app.commands.execute("docmanager:open", { path });
