"""Open the repository or notebook of a link in the user's home, without losing work.

``repository`` and ``notebook_download`` fetch the files, ``fetched_versions`` keeps the last
fetched ones outside of the folder, and ``material_folder`` merges them into it.

It runs in the server of the user: with the rights, the network and the limits of that session.
"""
